"""What is a step of SHT-AUC made of?  The problem in its units, and three ways over the rows."""
