"""(l,d)-semantic diversity by decoys (paper 003): sets of l values that are pairwise at least d apart."""
