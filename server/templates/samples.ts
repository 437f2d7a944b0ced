import { defineProviderHandler } from '../core/provider-handler.ts'
import type { InputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'

type Input = InputOf<'messaging_upload_template_sample'>

const MiB = 1024 * 1024

/** The maximum size of a type in MiB, and a check of how its bytes begin. */
const SAMPLE_KINDS: Readonly<
  Record<Input['content_type'], { maxMiB: number; fits: (bytes: Buffer) => boolean }>
> = {
  'image/jpeg': { maxMiB: 5, fits: (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) },
  'image/png': {
    maxMiB: 5,
    fits: (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')),
  },
  'video/mp4': { maxMiB: 16, fits: (bytes) => bytes.subarray(4, 8).toString('latin1') === 'ftyp' },
  // Readers look for it in the first kilobyte.
  'application/pdf': { maxMiB: 16, fits: (bytes) => bytes.subarray(0, 1024).includes('%PDF-') },
}

/**
 * The intent is empty, since the file is in the input, which is stored. Uploading it again does no harm, so
 * an earlier upload is not looked up.
 */
export const uploadSample = defineProviderHandler<
  'messaging_upload_template_sample',
  null,
  { handle: string | null }
>({
  prepare: async (_ctx, { content_type: type, data }) => {
    const bytes = Buffer.from(data, 'base64')
    const { maxMiB, fits } = SAMPLE_KINDS[type]
    if (bytes.byteLength > maxMiB * MiB)
      throw invalidField(
        'data',
        'too_large',
        `has ${bytes.byteLength} bytes; ${type} may have at most ${maxMiB * MiB} (${maxMiB} MiB)`,
        { fix: 'Send a smaller sample.' },
      )
    if (!fits(bytes))
      throw invalidField('data', 'content_mismatch', `is not ${type}: the file begins with other bytes`, {
        fix: 'Send the content_type of the file, and its bytes in base64.',
      })
    return null
  },
  call: async (_intent, { provider, signal }, { file_name: fileName, content_type: contentType, data }) =>
    await provider.uploadSample({ bytes: Buffer.from(data, 'base64'), contentType, fileName }, signal),
  complete: async (_ctx, _intent, { handle }) => ({ media_handle: handle }),
  dryRunResult: () => ({ handle: null }),
})
