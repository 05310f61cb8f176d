//! Macro that implements Pingora's connection traits by an inner connection, except reading, writing and shutting down.

/// Implements the traits of a Pingora connection, apart from reading, writing and shutting down, by the field `inner`.
macro_rules! delegate_connection {
    ($Type:ty) => {
        #[async_trait::async_trait]
        impl pingora::protocols::Peek for $Type {
            async fn try_peek(&mut self, buffer: &mut [u8]) -> std::io::Result<bool> {
                self.inner.try_peek(buffer).await
            }
        }

        impl pingora::protocols::UniqueID for $Type {
            fn id(&self) -> pingora::protocols::UniqueIDType {
                self.inner.id()
            }
        }

        impl pingora::protocols::Ssl for $Type {
            fn get_ssl(&self) -> Option<&pingora::protocols::tls::TlsRef> {
                self.inner.get_ssl()
            }

            fn get_ssl_digest(&self) -> Option<std::sync::Arc<pingora::protocols::tls::SslDigest>> {
                self.inner.get_ssl_digest()
            }

            fn selected_alpn_proto(&self) -> Option<pingora::protocols::ALPN> {
                self.inner.selected_alpn_proto()
            }
        }

        impl pingora::protocols::GetTimingDigest for $Type {
            /// None: Pingora copies them for each request, and nothing reads them.
            fn get_timing_digest(&self) -> Vec<Option<pingora::protocols::TimingDigest>> {
                Vec::new()
            }
        }

        impl pingora::protocols::GetProxyDigest for $Type {
            fn get_proxy_digest(
                &self,
            ) -> Option<std::sync::Arc<pingora::protocols::raw_connect::ProxyDigest>> {
                self.inner.get_proxy_digest()
            }
        }

        impl pingora::protocols::GetSocketDigest for $Type {
            fn get_socket_digest(&self) -> Option<std::sync::Arc<pingora::protocols::SocketDigest>> {
                self.inner.get_socket_digest()
            }
        }
    };
}

pub(super) use delegate_connection;
