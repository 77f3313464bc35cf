"""Event times: units, the freshness that is promised, and records that come late."""
