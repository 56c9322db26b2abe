"""Reading a finite machine off a trained net; claims nothing and knows no task."""
