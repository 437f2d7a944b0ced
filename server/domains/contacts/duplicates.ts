import type { Context, Handler, OutputOf } from '../../handler.ts'
import { duplicateReasons } from '../../../catalog/contacts/merge.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import {
  type ComparedContact,
  listHolders,
  listLineOwners,
  listSharedKeys,
  loadComparedContacts,
  type SharedSource,
} from '../../../storage/contacts/doubles.ts'
import { fold } from '../../../storage/values/text.ts'
import { isNameHidden, showContactName, showPhone, showQuotingText } from '../../visibility/phones.ts'
import { canSeeField, hasHiddenPhones, listVisibleChannels } from '../../visibility/policy.ts'
import { toPhoneLine } from './phone-lines.ts'

type Output = OutputOf<'crm_find_duplicates'>
type Pair = Output['data'][number]
type Reason = Pair['reasons'][number]

/** A value that more contacts have is nobody's own: a common name, the address of a company. */
const MAX_HOLDERS = 20
/**
 * How much is read for a page. `rows`: values that a step reads, from an index alone, with their rows, or with a
 * look-up of each as a phone. `keys`: shared values that a step looks at. A page takes about a second of processor
 * time at most (measured with a million contacts). Tests change it.
 */
export const duplicateSteps = {
  rows: { user_id: 250_000, name: 150_000, email: 20_000, phone: 15_000 },
  keys: 250,
  perPage: 4,
}
/** Shared values that are looked at together. */
const CHUNK = 25

/** A source at its place in the ranking; ids of fields order those of one kind. */
type Stage = { source: SharedSource; rank: number; fieldId: string }
/** Where the list goes on: after a value, at it, or in it after a pair. */
type Position = {
  rank: number
  fieldId: string
  key: string
  at: 'after' | 'from' | readonly [string, string]
}

const listStages = async ({ tx, actor }: Context): Promise<Stage[]> => {
  const fields = (await listFields(tx, actor.workspace.id)).filter((field) => canSeeField(actor, field))
  return duplicateReasons.flatMap((kind, rank): Stage[] => {
    if (kind === 'user_id' || kind === 'name') return [{ source: { kind }, rank, fieldId: '0' }]
    if (kind === 'phone' && hasHiddenPhones(actor)) return []
    return fields
      .filter(({ type }) => type === kind)
      .map(({ id }) => ({ source: { kind, fieldId: id }, rank, fieldId: id }))
  })
}

const textOf = ({ attrs }: ComparedContact, fieldId: string): string | undefined =>
  typeof attrs[fieldId] === 'string' ? attrs[fieldId] : undefined

/** What two contacts share at a stage, as this actor may see it, with the value by which the stage finds them. */
const findShared = (
  { actor }: Context,
  { source }: Stage,
  a: ComparedContact,
  b: ComparedContact,
): { reason: Reason; key: string } | undefined => {
  const share = (value: string, key: string) => ({ reason: { kind: source.kind, value }, key })
  switch (source.kind) {
    case 'user_id': {
      const id = a.chatapp_user_id
      return id !== null && id === b.chatapp_user_id && showQuotingText(actor, id) === id
        ? share(id, id)
        : undefined
    }
    case 'name': {
      const channelIds = a.channel_ids.filter((id) => b.channel_ids.includes(id))
      const isSame = a.name_key !== '' && a.name_key === b.name_key && channelIds.length > 0
      if (!isSame || isNameHidden(actor, a.name) || isNameHidden(actor, b.name)) return undefined
      const { reason, key } = share(a.name ?? '', a.name_key)
      return { reason: { ...reason, channel_ids: channelIds }, key }
    }
    case 'email': {
      const [mine, theirs] = [textOf(a, source.fieldId), textOf(b, source.fieldId)]
      return mine !== undefined && theirs !== undefined && fold(mine) === fold(theirs)
        ? share(mine, fold(mine).slice(0, 200))
        : undefined
    }
    case 'phone': {
      const [mine, theirs] = [textOf(a, source.fieldId), textOf(b, source.fieldId)]
      if (mine !== undefined && (mine === theirs || toPhoneLine(mine).key === b.line_key))
        return share(mine, mine)
      return theirs !== undefined && toPhoneLine(theirs).key === a.line_key
        ? share(theirs, theirs)
        : undefined
    }
  }
}

/**
 * The pairs of contacts that have one value: with the oldest with which each shares it in the eyes of this actor. Two
 * that have the number of each other are paired by one of them.
 */
const pairUp = (
  ctx: Context,
  stage: Stage,
  key: string,
  contacts: readonly ComparedContact[],
): [ComparedContact, ComparedContact][] => {
  const sorted = contacts.toSorted((a, b) => compareIds(a.id, b.id))
  return sorted.flatMap((other, n): [ComparedContact, ComparedContact][] => {
    const first = sorted.slice(0, n).find((one) => findShared(ctx, stage, one, other)?.key === key)
    return first ? [[first, other]] : []
  })
}

const compareIds = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

const isBefore = (a: Stage, { rank, fieldId }: Pick<Position, 'rank' | 'fieldId'>): boolean =>
  a.rank === rank ? compareIds(a.fieldId, fieldId) < 0 : a.rank < rank

const showCompared = (ctx: Context, { name, phone, created_at }: ComparedContact) => ({
  name: showContactName(ctx.actor, name),
  phone: showPhone(ctx.actor, phone),
  created_at,
})

/** Returns the pair with all that both share; undefined where an earlier stage lists it. */
const toPair = async (
  ctx: Context,
  stages: readonly Stage[],
  stage: Stage,
  [a, b]: readonly [ComparedContact, ComparedContact],
): Promise<Pair | undefined> => {
  const shared = stages.flatMap((one) => {
    const found = findShared(ctx, one, a, b)
    return found ? [{ stage: one, ...found }] : []
  })
  for (const { stage: earlier, key } of shared.filter((one) => isBefore(one.stage, stage))) {
    const holders = await listHolders(ctx.heavy, ctx.actor.workspace.id, earlier.source, [key], MAX_HOLDERS)
    if (holders.get(key)!.length <= MAX_HOLDERS) return undefined
  }
  const reasons = new Map(shared.map(({ reason }) => [`${reason.kind} ${fold(reason.value)}`, reason]))
  return {
    contact_id: a.id,
    other_contact_id: b.id,
    contact: showCompared(ctx, a),
    other_contact: showCompared(ctx, b),
    reasons: [...reasons.values()],
  }
}

/** `share`: of a whole step. */
type Step = { keys: { key: string; owner: string | undefined }[]; next: Position | undefined; share: number }

/** Reads the next values of a stage. Returns those that several contacts have, and where the stage goes on. */
const readStep = async (ctx: Context, { source, ...place }: Stage, from: Position): Promise<Step> => {
  const workspaceId = ctx.actor.workspace.id
  const rows = duplicateSteps.rows[source.kind]
  const start = { key: from.key, inclusive: from.at !== 'after' }
  const limit = source.kind === 'phone' ? null : duplicateSteps.keys
  const read = await listSharedKeys(ctx.heavy, workspaceId, source, start, { rows, limit })
  const lines = source.kind === 'phone' ? read.map(({ key }) => toPhoneLine(key).key) : []
  const owners = await listLineOwners(ctx.heavy, workspaceId, lines)
  const keys = read.flatMap(({ key, n }, i) => {
    const owner = owners.get(lines[i] ?? '')
    return n > 1 || owner !== undefined ? [{ key, owner }] : []
  })
  const last = read.at(-1)
  const share = (last?.upto ?? 0) / rows + keys.length / duplicateSteps.keys
  if (!last || (last.is_last && last.upto < rows)) return { keys, next: undefined, share }
  // One contact has the last value, as far as it was read.
  const at = keys.at(-1)?.key === last.key ? 'after' : 'from'
  return { keys, next: { ...place, key: last.key, at }, share }
}

const openPosition = (ctx: Context, cursor: string | undefined): Position | undefined => {
  const opened = ctx.cursors.open(cursor)
  if (!opened) return undefined
  const [rank, fieldId, key, first, other] = opened.map(String) as [string, string, string, string, string]
  const at = first === 'after' || first === 'from' ? first : ([first, other] as const)
  return { rank: Number(rank), fieldId, key, at }
}

const sealPosition = (ctx: Context, { rank, fieldId, key, at }: Position): string =>
  ctx.cursors.seal([rank, fieldId, key, ...(typeof at === 'string' ? [at, ''] : at)])

/** The pairs of these values that no page before has. */
const listPairs = async (
  ctx: Context,
  stages: readonly Stage[],
  stage: Stage,
  keys: Step['keys'],
  from: Position,
): Promise<{ pair: Pair; position: Position }[]> => {
  const { id: workspaceId } = ctx.actor.workspace
  const names = keys.map(({ key }) => key)
  const held = await listHolders(ctx.heavy, workspaceId, stage.source, names, MAX_HOLDERS)
  const groups = keys.map(({ key, owner }) => {
    const holders = held.get(key)!
    return holders.length > MAX_HOLDERS ? [] : [...new Set([...holders, ...(owner ? [owner] : [])])]
  })
  const visible = listVisibleChannels(ctx.actor)
  const contacts = await loadComparedContacts(ctx.heavy, workspaceId, groups.flat(), visible)
  const found: { pair: Pair; position: Position }[] = []
  for (const [n, ids] of groups.entries()) {
    const { key } = keys[n]!
    const pairs = pairUp(
      ctx,
      stage,
      key,
      ids.flatMap((id) => contacts.get(id) ?? []),
    )
    for (const [a, b] of pairs) {
      if (key === from.key && typeof from.at !== 'string' && compareIds(b.id, from.at[1]) <= 0) continue
      const pair = await toPair(ctx, stages, stage, [a, b])
      const { rank, fieldId } = stage
      if (pair) found.push({ pair, position: { rank, fieldId, key, at: [a.id, b.id] } })
    }
  }
  return found
}

export const findDuplicates: Handler<'crm_find_duplicates'> = async (ctx, { cursor, limit }) => {
  const stages = await listStages(ctx)
  const opened = openPosition(ctx, cursor)
  const data: Pair[] = []
  let last: Position | undefined
  let spent = 0
  for (const stage of stages) {
    const { rank, fieldId } = stage
    if (opened && isBefore(stage, opened)) continue
    const isHere = opened?.rank === rank && opened.fieldId === fieldId
    let from: Position | undefined = isHere ? opened : { rank, fieldId, key: '', at: 'after' }
    while (from) {
      if (spent >= duplicateSteps.perPage) return { data, next_cursor: sealPosition(ctx, from) }
      const step: Step = await readStep(ctx, stage, from)
      spent += step.share
      for (let i = 0; i < step.keys.length; i += CHUNK) {
        const pairs = await listPairs(ctx, stages, stage, step.keys.slice(i, i + CHUNK), from)
        for (const { pair, position } of pairs) {
          if (data.length === limit) return { data, next_cursor: sealPosition(ctx, last!) }
          data.push(pair)
          last = position
        }
      }
      from = step.next
    }
  }
  return { data, next_cursor: null }
}
