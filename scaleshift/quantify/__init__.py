"""Which class proportions does an unlabelled sample have, when labels shifted?"""
