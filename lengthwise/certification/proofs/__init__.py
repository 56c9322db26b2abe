"""Methods that prove the float32 net itself right, one file each."""
