import type { Context, InputOf } from '../../handler.ts'
import { listSealedAccounts } from '../../../storage/channels/provider-accounts.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { invalidField } from '../../kernel/problem.ts'
import { chooseAccount, listConnectedAccounts } from './accounts.ts'

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

/** `accountId`: whose app the sample is uploaded to; null for that of the server's own credentials. */
type SampleIntent = { accountId: string | null } | null

/**
 * Chooses the account whose app takes the sample. It has to be named only where accounts of the workspace have
 * credentials of their own, since a handle is good for one app. Throws 400 or 404.
 */
const chooseSampleAccount = async (ctx: Context, requested: string | undefined): Promise<string | null> => {
  if (requested !== undefined) return (await chooseAccount(ctx, { business_account_id: requested })).id
  const accounts = await listConnectedAccounts(ctx)
  const ids = accounts.map(({ id }) => id)
  const withOwn = new Set((await listSealedAccounts(ctx.tx, ids)).map((row) => row.account_id))
  return withOwn.size === 0 ? null : (await chooseAccount(ctx, {})).id
}

/**
 * The intent is empty, since the file is in the input, which is stored. An earlier upload cannot be looked up;
 * another one leaves nothing at the provider but a handle that nobody uses.
 */
export const uploadSample = defineProviderHandler<
  'messaging_upload_template_sample',
  SampleIntent,
  { handle: string | null }
>({
  prepare: async (ctx, { content_type: type, data, business_account_id: requested }) => {
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
    return { accountId: await chooseSampleAccount(ctx, requested || undefined) }
  },
  call: async (
    intent,
    { services: { provider }, signal },
    { file_name: fileName, content_type: contentType, data },
  ) =>
    await provider.uploadSample({ bytes: Buffer.from(data, 'base64'), contentType, fileName }, signal, {
      // Intents of before there were accounts with credentials are null.
      accountId: intent?.accountId ?? null,
    }),
  findOutcome: async () => undefined,
  mayRepeat: true,
  complete: async (_ctx, _intent, { handle }) => ({ media_handle: handle }),
  dryRunResult: () => ({ handle: null }),
})
