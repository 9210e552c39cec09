//! Byte strings cross in one copy each way.

use bytes::{Buf, Bytes};
use uniffi::deps::anyhow::{Result, bail};
use uniffi::metadata::codes;
use uniffi::{FfiConverter, MetadataBuffer, RustBuffer, TypeId, derive_ffi_traits};

use crate::UniFfiTag;

/// The other side sees what it sees for `Vec<u8>` (`ByteArray`, `Data`, `bytes`), in the same layout. uniffi's own conversion of a
/// `Vec<u8>` goes element by element, 0.3 to 0.4 s for 64 MiB; this one copies the whole.
// SAFETY: the layout is that of `Vec<u8>`, an i32 with the length and the bytes, in a `RustBuffer`; nothing is taken from a pointer.
#[expect(unsafe_code, reason = "the trait is unsafe, as what is written must fit what the generated code reads")]
unsafe impl FfiConverter<UniFfiTag> for Bytes {
    type FfiType = RustBuffer;

    fn lower(bytes: Self) -> RustBuffer {
        let mut out = Vec::with_capacity(4 + bytes.len());
        <Self as FfiConverter<UniFfiTag>>::write(bytes, &mut out);
        RustBuffer::from_vec(out)
    }

    fn try_lift(buffer: RustBuffer) -> Result<Self> {
        // The buffer is ours from here on: what lies behind the length is taken as it is, without a copy.
        let mut whole = Self::from(buffer.destroy_into_vec());
        let length = length(&mut whole)?;
        if whole.len() != length {
            bail!("junk data behind a byte string");
        }
        Ok(whole)
    }

    fn write(bytes: Self, out: &mut Vec<u8>) {
        // No byte string of the contract is near 2 GiB.
        let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&bytes[..length.unsigned_abs() as usize]);
    }

    fn try_read(rest: &mut &[u8]) -> Result<Self> {
        let length = length(rest)?;
        let Some((bytes, behind)) = rest.split_at_checked(length) else { bail!("a byte string is cut short") };
        *rest = behind;
        Ok(Self::copy_from_slice(bytes))
    }

    const TYPE_ID_META: MetadataBuffer =
        MetadataBuffer::from_code(codes::TYPE_VEC).concat(<u8 as TypeId<UniFfiTag>>::TYPE_ID_META);
}

fn length(from: &mut impl Buf) -> Result<usize> {
    if from.remaining() < 4 {
        bail!("a byte string without its length");
    }
    Ok(usize::try_from(from.get_i32())?)
}

derive_ffi_traits!(local Bytes);

#[cfg(test)]
mod tests {
    use uniffi::Lower;

    use super::*;

    fn lift(written: Vec<u8>) -> Result<Bytes> {
        <Bytes as FfiConverter<UniFfiTag>>::try_lift(RustBuffer::from_vec(written))
    }

    #[test]
    fn bytes_look_as_uniffi_writes_a_vector_of_bytes() {
        for bytes in [vec![], vec![7], vec![0, 255, 1], vec![9; 100_000]] {
            let theirs = <Vec<u8> as Lower<UniFfiTag>>::lower(bytes.clone()).destroy_into_vec();
            let ours = <Bytes as FfiConverter<UniFfiTag>>::lower(bytes.clone().into()).destroy_into_vec();
            assert_eq!(ours, theirs);
            assert_eq!(lift(ours).unwrap(), bytes);

            let mut among = Vec::new();
            <Bytes as FfiConverter<UniFfiTag>>::write(bytes.clone().into(), &mut among);
            assert_eq!(among, theirs);
            among.push(1);
            let mut rest = among.as_slice();
            assert_eq!(<Bytes as FfiConverter<UniFfiTag>>::try_read(&mut rest).unwrap(), bytes);
            assert_eq!(rest, [1]);
        }
    }

    #[test]
    fn what_is_no_byte_string_is_refused() {
        for wrong in [vec![], vec![0, 0], vec![0, 0, 0, 2, 7], vec![0, 0, 0, 1, 7, 7], vec![255, 255, 255, 255]] {
            assert!(lift(wrong.clone()).is_err(), "{wrong:?}");
            let mut rest = wrong.as_slice();
            let read = <Bytes as FfiConverter<UniFfiTag>>::try_read(&mut rest);
            assert!(read.is_err() || !rest.is_empty(), "{wrong:?}");
        }
    }
}
