"""The timeline: which instants there are, what their files hold, and the one owner of what is published."""
