"""What is done to intensities, and undone: compensation, transforms, scaling of samples."""
