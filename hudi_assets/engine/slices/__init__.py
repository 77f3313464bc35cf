"""File slices: what listing and timeline make of the files, now and in the past."""
