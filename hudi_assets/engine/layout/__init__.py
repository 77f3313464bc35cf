"""The table-version seam: how a version names files, cuts slices and keeps its timeline."""
