import type { Interactive } from '../../../catalog/interactive.ts'
import type { Context } from '../../handler.ts'
import { isBlank } from '../../../catalog/values.ts'
import { visibilities } from '../../../catalog/quick-messages.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import {
  findVisibleByCode,
  findTeam,
  lockQuickMessageCodes,
  type QuickMessageVisibility,
} from '../../../storage/messages/quick-messages.ts'
import { requireTextFits } from '../messaging/offers.ts'
import { checkPlaceholders } from '../messaging/placeholders.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { isPublicHostName } from '../../public-host-name.ts'
import { isManager } from '../../visibility/policy.ts'
import { toViewer } from './rights.ts'

/** The content fields of an input; each may be absent. */
export type QuickMessageContent = {
  text?: string | undefined
  interactive?: Interactive | undefined
  media_url?: string | undefined
  file_name?: string | undefined
}

/** Whether a text is the message, and not the caption of a file. */
export const isWithText = (type: string): boolean => type === 'TEXT' || type === 'INTERACTIVE'

/** Throws 400 when a field does not fit the type, or could never be sent. */
export const checkContent = async (
  ctx: Context,
  type: string,
  { text, interactive, media_url: url, file_name: fileName }: QuickMessageContent,
): Promise<void> => {
  if (isWithText(type) && url !== undefined)
    throw invalidField('media_url', 'not_allowed', `is not allowed with ${type}`, {
      fix: 'Leave it out, or save an IMAGE, VIDEO or DOCUMENT.',
    })
  if (type !== 'DOCUMENT' && fileName !== undefined)
    throw invalidField('file_name', 'not_allowed', `is not allowed with ${type}`, {
      fix: 'Leave it out; only documents have file names.',
    })
  if (isWithText(type) && text !== undefined && isBlank(text))
    throw invalidField('text', 'blank', 'is blank', { fix: 'Write the message.' })
  if (interactive) checkOffer(type, interactive, text!)
  if (url !== undefined) checkMediaUrl(url)
  if (!isBlank(text))
    checkPlaceholders('text', text!, ctx.actor, await listFields(ctx.tx, ctx.actor.workspace.id))
}

const checkOffer = (type: string, offer: Interactive, text: string): void => {
  if (type !== 'INTERACTIVE')
    throw invalidField('interactive', 'not_allowed', `is not allowed with ${type}`, {
      fix: 'Leave it out, or save an INTERACTIVE.',
    })
  requireTextFits(text, offer)
  if (/\{\{|\}\}/.test(JSON.stringify(offer)))
    throw invalidField(
      'interactive',
      'placeholder_form',
      'contains a placeholder, which is filled in `text` alone',
      {
        fix: 'Write it without braces.',
      },
    )
}

/** The messaging provider fetches the file, so its address must be public. */
const checkMediaUrl = (text: string): void => {
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw invalidField('media_url', 'not_public', 'contains a user name or password', {
      fix: 'Send an address that everybody can read.',
    })
  if (!isPublicHostName(url.hostname))
    throw invalidField(
      'media_url',
      'not_public',
      `names the host ${url.hostname}, which is not a public name`,
      { fix: 'Send a public https address, such as https://files.example.com/menu.pdf.' },
    )
}

/**
 * Returns the id of the team that sees the quick message: null unless the visibility is `team`.
 * `currentTeamId`: the team it has now. Throws 400, 404, or 403 `not_a_member`.
 */
export const resolveTeam = async (
  ctx: Context,
  visibility: QuickMessageVisibility,
  teamId: string | undefined,
  currentTeamId: string | null,
): Promise<string | null> => {
  if (visibility !== 'team') {
    if (teamId === undefined) return null
    throw invalidField('team_id', 'not_allowed', `is not allowed with visibility ${visibility}`, {
      fix: 'Leave it out, or send visibility=team.',
      allowed: visibilities,
    })
  }
  if (teamId === undefined || teamId === currentTeamId) {
    if (currentTeamId !== null) return currentTeamId
    throw invalidField('team_id', 'required', 'is required with visibility team', {
      fix: 'Send the id of the team that sees it; workspace_list_teams lists the teams.',
    })
  }
  const team = await findTeam(ctx.tx, ctx.actor.workspace.id, teamId, ctx.actor.staff.id)
  if (!team) throw notFound('team', teamId)
  if (!isManager(ctx.actor) && !team.member) {
    throw new Problem(
      'forbidden',
      'You are not a member of this team. Choose one of your teams, or another visibility.',
      { reason: 'not_a_member', team_id: teamId },
    )
  }
  return team.id
}

/**
 * Reserves the code until the transaction ends. Codes are unique among the quick messages that a staff member
 * may see: one that is hidden takes none, for its refusal would tell of it. Throws 409 `duplicate`. `ownId`:
 * the quick message that may have the code.
 */
export const claimCode = async (ctx: Context, code: string, ownId?: string): Promise<void> => {
  const { tx, actor } = ctx
  await lockQuickMessageCodes(tx, actor.workspace.id)
  const existingId = await findVisibleByCode(tx, actor.workspace.id, toViewer(actor), code, ownId)
  if (existingId === undefined) return
  throw new Problem('conflict', `The code ${code} is taken in this workspace. Choose another.`, {
    reason: 'duplicate',
    existing_id: existingId,
  })
}
