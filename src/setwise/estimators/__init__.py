"""The scikit-learn estimators: split and cross-conformal, and how they are saved."""
