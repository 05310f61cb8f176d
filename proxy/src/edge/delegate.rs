//! Macros that implement a connection by an inner one: Pingora's traits except reading, writing and shutting down; and,
//! for a connection that only observes writing, these two.

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

/// Implements writing and shutting down by the field `inner`. The methods `written` and `flushed` receive its result.
macro_rules! delegate_writing {
    ($Type:ty) => {
        impl tokio::io::AsyncWrite for $Type {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let this = self.get_mut();
                let polled = std::pin::Pin::new(&mut this.inner).poll_write(context, bytes);
                this.written(&polled);
                polled
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                pieces: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let this = self.get_mut();
                let polled = std::pin::Pin::new(&mut this.inner).poll_write_vectored(context, pieces);
                this.written(&polled);
                polled
            }

            fn is_write_vectored(&self) -> bool {
                self.inner.is_write_vectored()
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let this = self.get_mut();
                let polled = std::pin::Pin::new(&mut this.inner).poll_flush(context);
                this.flushed(&polled);
                polled
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.inner).poll_shutdown(context)
            }
        }

        #[async_trait::async_trait]
        impl pingora::protocols::Shutdown for $Type {
            async fn shutdown(&mut self) {
                self.inner.shutdown().await;
            }
        }
    };
}

pub(super) use {delegate_connection, delegate_writing};
