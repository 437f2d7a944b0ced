import { replaceSecret } from '../../storage/webhooks.ts'
import type { Handler } from '../core/handler.ts'
import { lockEndpoint, requireUnrestrictedAccess, showCurrentEndpoint } from './access.ts'
import { createSigningSecret, sealSecret } from './secrets.ts'

export const rotateSecret: Handler<'webhooks_rotate_secret'> = async (ctx, { endpoint_id: id }) => {
  requireUnrestrictedAccess(ctx)
  const row = await lockEndpoint(ctx, id)
  const secret = createSigningSecret()
  const until = await replaceSecret(ctx.tx, row.workspace_id, id, sealSecret(ctx, row, secret), ctx.now)
  const endpoint = await showCurrentEndpoint(ctx, id)
  return {
    // The secret of a dry run is not stored.
    endpoint: ctx.dryRun ? { ...endpoint, signing_secret: 'whsec_****' } : endpoint,
    signing_secret: ctx.dryRun ? null : secret,
    old_secret_valid_until: until,
    warning: 'Store the new secret now: it is not shown again. The old one stops signing in 24 hours.',
  }
}
