//! `GET /decisions/{id}`: why a call was approved or denied.
