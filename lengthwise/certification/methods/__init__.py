"""Methods that prove the float32 net itself right. Each method is a folder with its prover and its evidence."""
