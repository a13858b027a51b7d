"""What do the methods say that go through the rows step by step?  One file a method, `base` what all do."""
