//! `POST /decisions/dry-run`: what would happen, and that asking changes nothing.
