import type { Handler } from '../../handler.ts'
import { replaceSecret } from '../../../storage/webhooks/webhooks.ts'
import { Problem } from '../../kernel/problem.ts'
import { lockEndpoint, requireUnrestrictedAccess, showCurrentEndpoint } from './access.ts'
import { createSigningSecret, listValidSecrets, MAX_SIGNING_SECRETS, sealSecret } from './secrets.ts'

export const rotateSecret: Handler<'webhooks_rotate_secret'> = async (ctx, { endpoint_id: id }) => {
  requireUnrestrictedAccess(ctx)
  const row = await lockEndpoint(ctx, id)
  // A secret that was promised for a day is not dropped before, so that there is no room for another.
  const old = listValidSecrets(row.old_secrets, ctx.realNow)
  if (old.length >= MAX_SIGNING_SECRETS - 1)
    throw new Problem(
      'conflict',
      `${MAX_SIGNING_SECRETS} secrets of this endpoint are valid, each for 24 hours. Rotate again after ` +
        `${old.at(-1)!.until}.`,
      { reason: 'too_many_secrets', retry_at: old.at(-1)!.until },
      { 'Retry-After': String(Math.ceil((Date.parse(old.at(-1)!.until) - Date.parse(ctx.realNow)) / 1000)) },
    )
  const secret = createSigningSecret()
  const kept = await replaceSecret(
    ctx.tx,
    row.workspace_id,
    id,
    sealSecret(ctx.services, row, secret),
    ctx.now,
  )
  const endpoint = await showCurrentEndpoint(ctx, id)
  return {
    // The secret of a dry run is not stored.
    endpoint: ctx.dryRun ? { ...endpoint, signing_secret: 'whsec_****' } : endpoint,
    signing_secret: ctx.dryRun ? null : secret,
    old_secret_valid_until: kept[0]!.until,
    old_secrets_valid_until: kept.map(({ until }) => until),
    warning:
      'Store the new secret now: it is not shown again. The one before stops signing in 24 hours' +
      `${kept.length > 1 ? ', older ones when their own 24 hours are over' : ''}.`,
  }
}
