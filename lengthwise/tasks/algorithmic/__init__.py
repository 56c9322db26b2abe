"""Problems that an algorithm of polynomially many steps solves: one string, one answer."""
