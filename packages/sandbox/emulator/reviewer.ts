import type { Db } from '../../../storage/database.ts'
import { findAccountClockOffset } from '../storage/numbers.ts'
import {
  hasDueSandboxTemplates,
  lockDueSandboxTemplates,
  type SandboxTemplate,
  type SandboxTemplateChange,
  updateSandboxTemplate,
} from '../storage/templates.ts'
import { insertSandboxUpdates } from '../storage/updates.ts'
import { addMs, inTransaction } from './call.ts'
import { findReviewFinding } from './template-checks.ts'
import { ARCHIVE_DAYS } from './templates.ts'
import { categoryUpdate, type StatusGrounds, templateUpdate } from './updates.ts'

export type ReviewDecision = 'approve' | 'reject' | 'pause' | 'disable' | 'category'

/** Reasons of the provider's own list; any other text is reported as the reviewer's explanation. */
const REASONS = ['ABUSIVE_CONTENT', 'INVALID_FORMAT', 'PROMOTIONAL', 'TAG_CONTENT_MISMATCH', 'SCAM', 'NONE']

/** `recommendation`: what to do about a rejection. */
export type ReviewGrounds = {
  reason?: string | undefined
  recommendation?: string | undefined
  category?: string | undefined
}

/** Decides on a locked template of any status, and enqueues the update. Returns it after the change. */
export const reviewTemplate = async (
  tx: Db,
  template: SandboxTemplate,
  decision: ReviewDecision,
  { reason, recommendation = 'Edit the template and submit it again.', category }: ReviewGrounds = {},
): Promise<SandboxTemplate> => {
  const write = (change: SandboxTemplateChange) =>
    updateSandboxTemplate(tx, template, { review_at: null, archived_at: null, kept_status: null, ...change })
  switch (decision) {
    case 'approve':
      return await enqueueStatusUpdate(
        tx,
        await write({ status: 'APPROVED', rejected_reason: 'NONE' }),
        'APPROVED',
      )
    case 'pause':
      return await enqueueStatusUpdate(
        tx,
        await write({ status: 'PAUSED' }),
        'PAUSED',
        otherInfo('FIRST_PAUSE', reason),
      )
    case 'disable':
      return await enqueueStatusUpdate(
        tx,
        await write({ status: 'DISABLED' }),
        'DISABLED',
        otherInfo('DISABLED', reason),
      )
    case 'reject':
      return await reject(tx, write, { reason: reason ?? 'INVALID_FORMAT', recommendation })
    case 'category': {
      const changed = await updateSandboxTemplate(tx, template, {
        category: category!,
        previous_category: template.category,
      })
      await insertSandboxUpdates(tx, [categoryUpdate(changed, template.category)])
      return changed
    }
  }
}

const reject = async (
  tx: Db,
  write: (change: SandboxTemplateChange) => Promise<SandboxTemplate>,
  { reason, recommendation }: { reason: string; recommendation: string },
): Promise<SandboxTemplate> => {
  const known = REASONS.includes(reason)
  const rejected = await write({ status: 'REJECTED', rejected_reason: known ? reason : 'INVALID_FORMAT' })
  return await enqueueStatusUpdate(tx, rejected, 'REJECTED', {
    rejection_info: { reason: known ? `The template was rejected: ${reason}.` : reason, recommendation },
  })
}

/** Says why a template is paused or disabled, which no code of the provider does. */
const otherInfo = (title: string, description: string | undefined): StatusGrounds =>
  description === undefined ? {} : { other_info: { title, description } }

const enqueueStatusUpdate = async (
  tx: Db,
  template: SandboxTemplate,
  event: string,
  grounds: StatusGrounds = {},
): Promise<SandboxTemplate> => {
  await insertSandboxUpdates(tx, [templateUpdate(template, event, grounds)])
  return template
}

const reviewAutomatically = async (tx: Db, template: SandboxTemplate): Promise<void> => {
  const finding = findReviewFinding(template.components, template.parameter_format === 'NAMED')
  await (finding ? reviewTemplate(tx, template, 'reject', finding) : reviewTemplate(tx, template, 'approve'))
}

/**
 * Approves or rejects templates whose review is due, and deletes those whose time in the archive is over.
 */
export const reviewDueTemplates = async (db: Db, now: string): Promise<void> => {
  const archivedBefore = addMs(now, -ARCHIVE_DAYS * 86_400_000)
  if (!(await hasDueSandboxTemplates(db, now, archivedBefore))) return
  await inTransaction(db, async (tx) => {
    for (const template of await lockDueSandboxTemplates(tx, now, archivedBefore)) {
      if (template.archived_at === null) await reviewAutomatically(tx, template)
      else
        await enqueueStatusUpdate(
          tx,
          await updateSandboxTemplate(tx, template, {
            status: 'DELETED',
            deleted_at: addMs(now, await findAccountClockOffset(tx, template.account_id)),
            review_at: null,
            archived_at: null,
          }),
          'DELETED',
        )
    }
  })
}
