//! Decodes a compressed stream piece by piece. Tollgate requests no compression, but providers may compress anyway, and
//! a stream that cannot be read cannot be settled.

use super::encoding::Encoding;
use super::failure::{BreakOff, UpstreamFailure};
use bytes::{Buf, Bytes};
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// Compressed bytes that are decoded at once. Deflate yields at most 1,032 bytes per input byte, hence at most 64 KiB.
const DECODED_AT_ONCE: usize = 60;

enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

/// A decoder of one stream.
pub(super) struct Inflater {
    decoder: Decoder,
    /// Compressed bytes that were not decoded yet.
    compressed: Bytes,
}

impl Inflater {
    /// Creates the decoder of an encoding; `None` for a stream that is not compressed.
    pub(super) fn new(encoding: Encoding) -> Option<Self> {
        let decoder = match encoding {
            Encoding::Identity => return None,
            Encoding::Gzip => Decoder::Gzip(MultiGzDecoder::new(Vec::new())),
            Encoding::Deflate => Decoder::Deflate(ZlibDecoder::new(Vec::new())),
        };
        Some(Self {
            decoder,
            compressed: Bytes::new(),
        })
    }

    /// Adds compressed bytes, once [`next`](Self::next) has returned `None`.
    pub(super) fn push(&mut self, compressed: Bytes) {
        self.compressed = compressed;
    }

    /// Decodes some of the compressed bytes; `None` if there are none. The result is empty if these decode to nothing:
    /// a provider can send any number of empty blocks, and the caller must be able to pause between them.
    ///
    /// # Errors
    /// [`UpstreamFailure::Unreachable`] if the bytes are not in this encoding.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, UpstreamFailure> {
        if self.compressed.is_empty() {
            return Ok(None);
        }
        let some = &self.compressed[..self.compressed.len().min(DECODED_AT_ONCE)];
        let decoded = match &mut self.decoder {
            Decoder::Gzip(decoder) => decode(decoder, some).map(|()| std::mem::take(decoder.get_mut())),
            Decoder::Deflate(decoder) => decode(decoder, some).map(|()| std::mem::take(decoder.get_mut())),
        };
        let broken = UpstreamFailure::Unreachable(BreakOff::BadAnswer("its encoding is broken"));
        let decoded = decoded.map_err(|_error| broken)?;
        self.compressed.advance(some.len());
        Ok(Some(decoded.into()))
    }
}

/// Decodes all of `some`, and flushes the output so far.
fn decode(decoder: &mut impl Write, some: &[u8]) -> io::Result<()> {
    decoder.write_all(some)?;
    decoder.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn all(encoding: &str, pieces: &[&[u8]]) -> Result<Vec<u8>, UpstreamFailure> {
        let encoding = Encoding::parse(Some(encoding.as_bytes())).unwrap();
        let mut inflater = Inflater::new(encoding).unwrap();
        let mut plain = Vec::new();
        for piece in pieces {
            inflater.push(Bytes::copy_from_slice(piece));
            while let Some(bytes) = inflater.next()? {
                assert!(bytes.len() <= 64 << 10, "{}", bytes.len());
                plain.extend_from_slice(&bytes);
            }
        }
        Ok(plain)
    }

    /// Each event can be read when it is sent, not only at the end of the stream.
    #[test]
    fn flushed_data_is_decoded_immediately() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            gzip.write_all(event.as_bytes()).unwrap();
            gzip.flush().unwrap();
            pieces.push(std::mem::take(gzip.get_mut()));
        }
        assert_eq!(all("gzip", &[&pieces[0]]).unwrap(), b"data: 1\n\n");
        assert_eq!(
            all("X-GZip", &[&pieces[0], &pieces[1]]).unwrap(),
            b"data: 1\n\ndata: 2\n\n"
        );
        let bytes: Vec<&[u8]> = pieces.iter().flat_map(|piece| piece.chunks(1)).collect();
        assert_eq!(all("gzip", &bytes).unwrap(), b"data: 1\n\ndata: 2\n\n");
    }

    #[test]
    fn a_bomb_comes_in_small_pieces() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&vec![0; 10 << 20]).unwrap();
        let bomb = zlib.finish().unwrap();
        assert_eq!(all("deflate", &[&bomb]).unwrap().len(), 10 << 20);
    }

    /// The caller can pause between pieces that decode to nothing.
    #[test]
    fn empty_blocks_come_in_pieces_too() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"data: 1\n\n").unwrap();
        zlib.flush().unwrap();
        let empty_blocks = [0, 0, 0, 0xff, 0xff].repeat(1000);
        let mut inflater = Inflater::new(Encoding::Deflate).unwrap();
        inflater.push([zlib.get_ref().as_slice(), &empty_blocks].concat().into());
        let mut pieces = Vec::new();
        while let Some(piece) = inflater.next().unwrap() {
            pieces.push(piece);
        }
        assert_eq!(pieces.concat(), b"data: 1\n\n");
        assert!(pieces.len() >= empty_blocks.len() / DECODED_AT_ONCE);
    }

    #[test]
    fn a_body_in_another_coding_is_an_error() {
        assert!(all("gzip", &[b"data: 1\n\ndata: 2\n\n"]).is_err());
    }
}
