"""The rooms of HudiTable: what it reads, writes, maintains and looks at, each a class that the table is made of."""
