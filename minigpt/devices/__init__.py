"""What there is to compute on, whether it computes rightly, and how its memory runs out."""
