"""What files of strangers may hold: bounds, declared beside the fields that hold the values."""
