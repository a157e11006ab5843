"""Loops of estimators: `em` over sets, `em_folds` for held-out records, `coarse` over general values."""
