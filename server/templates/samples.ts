import { inThreeParts } from '../messaging/send.ts'
import type { InputOf, OutputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'

type Input = InputOf<'messaging_upload_template_sample'>

const MiB = 1024 * 1024

/** How large a file of a kind may be, in MiB, and how its bytes begin. */
const kinds: Readonly<Record<Input['content_type'], { most: number; fits: (bytes: Buffer) => boolean }>> = {
  'image/jpeg': { most: 5, fits: (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) },
  'image/png': {
    most: 5,
    fits: (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')),
  },
  'video/mp4': { most: 16, fits: (bytes) => bytes.subarray(4, 8).toString('latin1') === 'ftyp' },
  // Readers look for it in the first kilobyte.
  'application/pdf': { most: 16, fits: (bytes) => bytes.subarray(0, 1024).includes('%PDF-') },
}

/**
 * The file itself stays with the input, which is kept already. To upload it once more does no harm, so
 * nothing is looked up.
 */
export const uploadSample = inThreeParts<
  Input,
  OutputOf<'messaging_upload_template_sample'>,
  null,
  { handle: string | null }
>({
  prepare: async (_ctx, { content_type: type, data }) => {
    const bytes = Buffer.from(data, 'base64')
    const { most, fits } = kinds[type]
    if (bytes.byteLength > most * MiB)
      throw invalidField(
        'data',
        'too_large',
        `holds ${bytes.byteLength} bytes; ${type} may have ${most * MiB} (${most} MiB)`,
        { fix: 'Send a smaller sample.' },
      )
    if (!fits(bytes))
      throw invalidField('data', 'content_mismatch', `is not ${type}: the file begins otherwise`, {
        fix: 'Send the content_type that the file has, and its bytes in base64.',
      })
    return null
  },
  call: async (_intent, { provider, signal }, { file_name: fileName, content_type: contentType, data }) =>
    await provider.uploadSample({ bytes: Buffer.from(data, 'base64'), contentType, fileName }, signal),
  settle: async (_ctx, _intent, { handle }) => ({ media_handle: handle }),
  rehearse: () => ({ handle: null }),
})
