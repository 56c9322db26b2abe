"""What each method of proof writes into a certificate, one file each; never imports torch."""
