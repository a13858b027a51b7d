"""What do sample sheets and panel sheets say, and which columns does a study have?"""
