import { visibilities } from '../../catalog/quick-messages.ts'
import { listFields } from '../../storage/custom-fields.ts'
import {
  findQuickMessageByCode,
  findTeam,
  lockQuickMessageCodes,
  type Visibility,
} from '../../storage/quick-messages.ts'
import type { Context } from '../core/context.ts'
import { checkPlaceholders } from '../messaging/placeholders.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'
import { isPublicName } from '../public-name.ts'
import { viewerOf } from './rights.ts'

/** What an input says of the content; each field may be absent. */
export type Content = {
  text?: string | undefined
  media_url?: string | undefined
  file_name?: string | undefined
}

export const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === ''

/** Whether the fields that are given go with the type, and can be sent one day. */
export const checkContent = async (
  ctx: Context,
  type: string,
  { text, media_url: url, file_name: fileName }: Content,
): Promise<void> => {
  if (type === 'TEXT' && url !== undefined)
    throw invalidField('media_url', 'not_allowed', 'does not go with TEXT', {
      fix: 'Leave it out, or save an IMAGE, VIDEO or DOCUMENT.',
    })
  if (type !== 'DOCUMENT' && fileName !== undefined)
    throw invalidField('file_name', 'not_allowed', `does not go with ${type}`, {
      fix: 'Leave it out; only documents have file names.',
    })
  if (type === 'TEXT' && text !== undefined && isBlank(text))
    throw invalidField('text', 'blank', 'is blank', { fix: 'Write the message.' })
  if (url !== undefined) checkAddress(url)
  if (!isBlank(text))
    checkPlaceholders('text', text!, ctx.actor, await listFields(ctx.tx, ctx.actor.workspace.id))
}

/** The messaging provider fetches the file, so it must be able to. */
const checkAddress = (text: string): void => {
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw invalidField('media_url', 'not_public', 'holds a user name or password', {
      fix: 'Give an address that everybody can read.',
    })
  if (!isPublicName(url.hostname))
    throw invalidField(
      'media_url',
      'not_public',
      `names the host ${url.hostname}, which is not a public name`,
      { fix: 'Give a public https address, such as https://files.example.com/menu.pdf.' },
    )
}

/**
 * The team that sees it with this visibility: none but with `team`. `present`: the team it has already.
 * Throws 400, 404, or 403 `not_a_member`.
 */
export const teamOf = async (
  ctx: Context,
  visibility: Visibility,
  teamId: string | undefined,
  present: string | null,
): Promise<string | null> => {
  if (visibility !== 'team') {
    if (teamId === undefined) return null
    throw invalidField('team_id', 'not_allowed', `does not go with visibility ${visibility}`, {
      fix: 'Leave it out, or send visibility=team.',
      allowed: visibilities,
    })
  }
  if (teamId === undefined || teamId === present) {
    if (present !== null) return present
    throw invalidField('team_id', 'required', 'is required with visibility team', {
      fix: 'Name the team that sees it; workspace_list_teams lists them.',
    })
  }
  const team = await findTeam(ctx.tx, ctx.actor.workspace.id, teamId, ctx.actor.staff.id)
  if (!team) throw notFound('team', teamId)
  if (ctx.actor.staff.role === 'agent' && !team.member) {
    throw new Problem(
      'forbidden',
      'You are not a member of this team. Choose one of your teams, or another visibility.',
      { reason: 'not_a_member', team_id: teamId },
    )
  }
  return team.id
}

/**
 * Until the transaction ends nobody else takes this code. Throws 409 `duplicate`; who has it is told to
 * those who may see it. `ownId`: the reply that may have it.
 */
export const claimCode = async (ctx: Context, code: string, ownId?: string): Promise<void> => {
  await lockQuickMessageCodes(ctx.tx, ctx.actor.workspace.id)
  const there = await findQuickMessageByCode(ctx.tx, ctx.actor.workspace.id, viewerOf(ctx.actor), code)
  if (!there || there.id === ownId) return
  throw new Problem('conflict', `The code ${code} is taken in this workspace. Choose another.`, {
    reason: 'duplicate',
    ...(there.visible ? { existing_id: there.id } : {}),
  })
}
