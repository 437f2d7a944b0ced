import { getDecision } from '../../agent-policy.ts'
import { hash } from 'node:crypto'
import { findOperation } from '../../../catalog/index.ts'
import type { Db } from '../../../storage/database.ts'
import { readSendingChannel } from '../../../storage/messages/sends.ts'
import { findTemplate, type TemplateRow } from '../../../storage/templates/templates.ts'
import type { Actor } from '../../kernel/context.ts'
import { Problem } from '../../kernel/problem.ts'
import { parseTemplateParts, templateBodyText } from '../messaging/template-components.ts'
import { describeParts } from '../messaging/template-parts.ts'
import type { BulkTemplate, Personal } from './values.ts'

/*
 * What a person approved of a broadcast of an AI agent goes to all of its recipients, also to those who are sent to
 * days later: the template may have got another text, and passed its review, by then.
 */

/** Whether a person decides, or has decided, on a broadcast: that of an agent whose policy does not allow it. */
export const needsApproval = (actor: Actor): boolean =>
  actor.key.agent &&
  (actor.approvedBy !== undefined ||
    getDecision(actor, findOperation('messaging_send_bulk')!).decision !== 'allow')

/** Returns a digest of what the message says beside the values of contacts. */
export const digestText = (
  { category, components }: Pick<TemplateRow, 'category' | 'components'>,
  personal: Personal,
): string => {
  const text = templateBodyText(category, parseTemplateParts(components).body)
  const parts = describeParts(components, personal.label())
  return hash('sha256', JSON.stringify([text, parts]), 'base64url').slice(0, 22)
}

/** What is kept of a broadcast. `text_digest`: of what a person approved; absent where nobody did. */
type Kept = { template: BulkTemplate; channel_id: string; text_digest?: string }

/** Throws 409 `template_changed` where the rest of a broadcast would say what its approver was not shown. */
export const requireApprovedText = async (
  db: Db,
  workspaceId: string,
  { template: { name, language }, channel_id: channelId, text_digest: approved }: Kept,
  personal: Personal,
): Promise<void> => {
  if (approved === undefined) return
  const channel = await readSendingChannel(db, workspaceId, channelId)
  const template = channel && (await findTemplate(db, workspaceId, channel.account_id, name, language))
  // What is gone is refused with each message.
  if (!template || digestText(template, personal) === approved) return
  throw new Problem(
    'conflict',
    `The template ${name} (${language}) is not what the approver was shown. Ask for the rest as a new broadcast.`,
    { reason: 'template_changed' },
  )
}
