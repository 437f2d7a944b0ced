import { grantableScopes } from '../../server/oauth/metadata.ts'
import { issueLoginCode } from '../../server/oauth/login-codes.ts'
import { notFoundError, parseId, stringFlag } from './flags.ts'
import type { AdminVerb } from './verb.ts'

export const loginCodeVerb: AdminVerb = {
  name: 'login-code',
  summary: 'Create the code with which a staff member signs in an AI client',
  about:
    'The staff member enters it on the sign-in page. It is valid once, for 10 minutes, and replaces ' +
    'the previous one. Staff with a key of their own use: wcrm login-code',
  scoped: true,
  required: [['--staff <id>', 'staff member who signs in']],
  run: async (session, flags) => {
    const staffId = parseId(stringFlag(flags, 'staff')!, '--staff')
    const db = await session.db()
    const workspace = await session.workspace()
    const grantable = {
      staffId,
      scopes: [...grantableScopes, 'approvals:write' as const],
      keyExpiresAt: null,
    }
    const issued = await issueLoginCode(db, workspace.id, grantable, session.now)
    if (!issued)
      throw notFoundError(
        `The workspace has no enabled staff member ${staffId}.`,
        '--staff',
        'List them with: wcrm admin staff list',
      )
    return {
      code: issued.code,
      staff_id: staffId,
      workspace_id: workspace.id,
      expires_at: issued.expiresAt,
    }
  },
}
