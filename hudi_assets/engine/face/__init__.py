"""The parts of `HudiTable`: what it reads, writes, maintains and tells of itself."""
