import type { Context, Handler } from '../../handler.ts'
import { createHash } from 'node:crypto'
import type { ContactFilter } from '../../../storage/filters/filter.ts'
import {
  compareMemberships,
  deleteTracking,
  findMemberships,
  findMembershipSpan,
  findTracking,
  insertTracking,
  lockTrackedFilters,
} from '../../../storage/filters/memberships.ts'
import { lockSavedFilter } from '../../../storage/filters/saved-filters.ts'
import type { Actor } from '../../kernel/context.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import { parseFilterDate } from '../filters/dates.ts'
import { type FilterContext, parseSavedFilter } from '../filters/parse-filter.ts'
import { canSeeManagerFields } from '../../visibility/policy.ts'

const MAX_TRACKED = 10

/** Somebody who may see everything: records are of all members, whoever asks for them. */
export const createUnlimitedActor = (workspace: Actor['workspace']): Actor => ({
  workspace,
  staff: { id: '0', name: '', role: 'owner', hidePhoneNumbers: false, reports: true, channelIds: null },
  key: {
    id: '0',
    familyId: '0',
    name: null,
    scopes: [],
    test: false,
    apiVersion: '',
    expiresAt: null,
    allowFrom: null,
    agent: false,
    policy: null,
    pausedAt: null,
    phones: true,
    contactsPerDay: null,
  },
})

/** Names what a filter means, with the saved filters in it; the same for the same conditions. */
export const digestFilter = (filter: ContactFilter): string =>
  createHash('sha256').update(JSON.stringify(filter)).digest('base64url')

/**
 * Returns the digest of a saved filter. Throws 403 where the actor may not see what it tests, or where it would match
 * others for the actor, who may see some channels only.
 */
const digestVisible = async (ctx: FilterContext, id: string): Promise<string> => {
  const own = digestFilter(await parseSavedFilter(ctx, id))
  const actor = createUnlimitedActor(ctx.actor.workspace)
  if (own !== digestFilter(await parseSavedFilter({ ...ctx, actor }, id)))
    throw new Problem(
      'forbidden',
      'The saved filter tests what happened on channels, of which you may see some only.',
      { reason: 'channels_limited' },
    )
  return own
}

/** Who saved it may, and whoever sees what managers do. */
const requireTracker = async (ctx: Context, id: string): Promise<void> => {
  const row = await lockSavedFilter(ctx.tx, ctx.actor.workspace.id, id)
  if (!row)
    throw new Problem('not_found', `No saved filter with the id ${id}.`, { reason: 'saved_filter_not_found' })
  if (row.owner_staff_id !== ctx.actor.staff.id && !canSeeManagerFields(ctx.actor))
    throw new Problem(
      'forbidden',
      'Only the staff member who saved this filter, owners, admins and managers may track it.',
      { reason: 'not_owner', owner_staff_id: row.owner_staff_id },
    )
}

export const trackSavedFilter: Handler<'crm_track_saved_filter'> = async (
  ctx,
  { saved_filter_id: id, tracked },
) => {
  const workspaceId = ctx.actor.workspace.id
  await requireTracker(ctx, id)
  await digestVisible(ctx, id)
  const count = await lockTrackedFilters(ctx.tx, workspaceId)
  const before = await findTracking(ctx.tx, workspaceId, id)
  if (tracked && before === undefined) {
    if (count >= MAX_TRACKED)
      throw new Problem(
        'conflict',
        `The workspace tracks ${count} saved filters; ${MAX_TRACKED} are allowed.`,
        {
          reason: 'too_many_tracked_filters',
        },
      )
    await insertTracking(ctx.tx, workspaceId, id, ctx.now)
  }
  if (!tracked) await deleteTracking(ctx.tx, workspaceId, id)
  ctx.auditChange({ tracked: before !== undefined }, { tracked })
  return { saved_filter_id: id, tracked, tracked_since: tracked ? (before ?? ctx.now) : null }
}

const resolveSince = (ctx: Context, text: string): string => {
  const date = parseFilterDate(text, ctx.now, ctx.actor.workspace.timezone)
  if ('detail' in date) throw invalidField('since', 'invalid_date', date.detail, { fix: date.fix })
  return date.instant
}

export const reportFilterMembership: Handler<'reports_filter_membership'> = async (ctx, input) => {
  const workspaceId = ctx.actor.workspace.id
  const id = String(input.saved_filter_id)
  const digest = await digestVisible(ctx, id)
  const since = resolveSince(ctx, input.since)
  const position = ctx.cursors.open(input.cursor)?.map(String)
  const span = position
    ? await findMemberships(ctx.tx, workspaceId, [position[1]!, position[2]!])
    : await findMembershipSpan(ctx.tx, workspaceId, id, digest, since)
  if (!span && position)
    throw new Problem(
      'invalid_input',
      'The records that the cursor compares were deleted; start the list again.',
      {
        reason: 'cursor_expired',
      },
    )
  if (!span)
    throw new Problem(
      'conflict',
      'Nobody has recorded yet who matches this filter. Track it (crm_track_saved_filter): a record is made ' +
        'within a minute.',
      { reason: 'filter_not_tracked' },
    )
  const { entered, left, changes } = await compareMemberships(ctx.tx, workspaceId, span, {
    after: position?.[0] ?? null,
    limit: input.limit + 1,
  })
  const page = changes.slice(0, input.limit)
  const last = changes.length > input.limit ? page.at(-1) : undefined
  const { from, to } = span
  const show = ({ recorded_at, members }: typeof from) => ({ recorded_at, members })
  return {
    saved_filter_id: id,
    since,
    complete: from.recorded_at <= since,
    from: show(from),
    to: show(to),
    entered,
    left,
    data: page.map((change) => ({
      contact_id: change.id,
      change: change.entered ? ('entered' as const) : ('left' as const),
      contact: change.exists
        ? ('exists' as const)
        : change.merged_into
          ? ('merged' as const)
          : ('deleted' as const),
      merged_into_id: change.exists ? null : change.merged_into,
    })),
    next_cursor: last ? ctx.cursors.seal([last.id, from.id, to.id]) : null,
  }
}
