"""Methods that prove the float32 net itself right: a folder each, with the prover and the evidence that it leaves."""
