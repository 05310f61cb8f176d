//! `/agents/{id}/runs`: what each run spent, and ending one.
