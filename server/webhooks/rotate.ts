import { replaceSecret } from '../../storage/webhooks.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { lockEndpoint, requireWholeSight, shownNow } from './access.ts'
import { newSecret, sealSecret } from './secrets.ts'

export const rotateSecret: Handler<
  InputOf<'webhooks_rotate_secret'>,
  OutputOf<'webhooks_rotate_secret'>
> = async (ctx, { endpoint_id: id }) => {
  requireWholeSight(ctx)
  const row = await lockEndpoint(ctx, id)
  const secret = newSecret()
  const until = await replaceSecret(ctx.tx, row.workspace_id, id, sealSecret(ctx, row, secret), ctx.now)
  const endpoint = await shownNow(ctx, id)
  return {
    // A rehearsal makes a secret that nobody will have.
    endpoint: ctx.dryRun ? { ...endpoint, signing_secret: 'whsec_****' } : endpoint,
    signing_secret: ctx.dryRun ? null : secret,
    old_secret_valid_until: until,
    warning: 'Store the new secret now: it is not shown again. The old one stops signing in 24 hours.',
  }
}
