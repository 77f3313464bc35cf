"""What hoodie.properties says, checked before anything else is believed."""
