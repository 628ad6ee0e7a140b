//! A file, piece by piece.

use std::{io::SeekFrom, ops::Range};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
};

use crate::BlobError;

/// The most bytes of a piece.
pub(crate) const PIECE: usize = 256 << 10;

/// Returns a range of a file.
pub(crate) fn of(file: File, range: Range<u64>) -> BoxStream<'static, Result<Bytes, BlobError>> {
    let state = Some((file, range.start, range.end - range.start));
    let next = |state: Option<(File, u64, u64)>| async move {
        let (mut file, from, left) = state?;
        if left == 0 {
            return None;
        }
        let read = async {
            file.seek(SeekFrom::Start(from)).await?;
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let mut piece = BytesMut::with_capacity(most);
            let read = (&mut file).take(most as u64).read_buf(&mut piece).await?;
            match read {
                0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => Ok((piece.freeze(), read as u64)),
            }
        };
        Some(match read.await {
            Ok((piece, read)) => (Ok(piece), Some((file, from + read, left - read))),
            Err(error) => (Err(BlobError::Spool(error)), None),
        })
    };
    stream::unfold(state, next).boxed()
}
