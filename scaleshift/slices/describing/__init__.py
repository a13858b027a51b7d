"""What is a slice, told to a person, and is it real?"""
