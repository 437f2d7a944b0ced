import { pluralize } from '../../catalog/values.ts'
import { lineRules, toPhoneLine } from '../../server/domains/contacts/phone-lines.ts'
import { listWorkspaces } from '../../storage/workspace/admin.ts'
import { listContactsWithoutLine, listUserIdDoubles } from '../../storage/contacts/doubles.ts'
import { findCustomers } from '../../storage/messages/inbound.ts'
import type { Db } from '../../storage/database.ts'
import { usageError } from '../error.ts'
import { limitFlag, parseId, stringFlag } from './flags.ts'
import { checkInstallation } from './installation-checks.ts'
import type { AdminFlags, AdminSession, AdminVerb } from './verb.ts'

/** What is wrong with one record. `id`: of the record, by which a check is continued. */
type Problem = { id: string; about: string; of: string | null; detail: string; fix: string }

/** A check of one workspace: lists what is wrong after the record with this id, in the order of the ids. */
type Check = {
  name: string
  list: (db: Db, workspaceId: string, after: string, limit: number) => Promise<Problem[]>
}

const describeDouble = (id: string, phone: string | null, of: string | null, why: string): Problem => ({
  id,
  about: `contact ${id}`,
  of: of === null ? null : `contact ${of}`,
  detail: `Contact ${id}${phone === null ? '' : ` (${phone})`} ${why}${of === null ? '' : `: contact ${of}`}.`,
  fix:
    of === null
      ? `Upsert the number anew, copy to it what contact ${id} should keep, then delete that.`
      : `Copy what contact ${id} should keep to contact ${of}, then delete it.`,
})

/**
 * The checks, in the order in which they run. Their names are part of `--after`. A check lists its problems by
 * the ids of records and reads no more than a page needs.
 */
const checks: readonly Check[] = [
  {
    name: 'double_phone',
    list: async (db, workspaceId, after, limit) => {
      // One expression: as many as there are rules would take a million contacts half a minute.
      const forms = lineRules.map(({ old }) => `(?:${old.source})`).join('|')
      const rows = await listContactsWithoutLine(db, workspaceId, forms, after, limit)
      const keys = rows.map(({ phone }) => toPhoneLine(phone).key)
      const owners = rows.length > 0 ? await findCustomers(db, workspaceId, keys, []) : []
      return rows.map(({ id, phone }, i) => {
        const owner = owners.find((row) => (row.phone_key ?? row.phone) === keys[i])
        return describeDouble(
          id,
          phone,
          owner?.id ?? null,
          owner
            ? 'has the phone line of another contact, which is found in its place'
            : `has a phone in an old form; upsert it as ${keys[i]}`,
        )
      })
    },
  },
  {
    name: 'double_user_id',
    list: async (db, workspaceId, after, limit) =>
      (await listUserIdDoubles(db, workspaceId, after, limit)).map(({ id, phone, of_id: of }) =>
        describeDouble(
          id,
          phone,
          of,
          "has the user id of another contact, which gets the customer's messages",
        ),
      ),
  },
]

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

/** A position in the list of problems: the last one that was listed. */
type Position = { workspaceId: string; check: number; after: string }

const limitOf = (flags: AdminFlags): number => {
  const limit = limitFlag(flags, 'limit') ?? DEFAULT_LIMIT
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw usageError(`--limit must be 1 to ${MAX_LIMIT}.`, '--limit')
}

const positionOf = (flags: AdminFlags): Position | undefined => {
  const text = stringFlag(flags, 'after')
  if (text === undefined) return undefined
  const [workspaceId, name, after, ...rest] = text.split(':')
  const check = checks.findIndex((one) => one.name === name)
  if (check < 0 || after === undefined || rest.length > 0)
    throw usageError('--after must be what the previous page printed as next_after.', '--after')
  return { workspaceId: parseId(workspaceId!, '--after'), check, after: parseId(after, '--after') }
}

/** Lists problems from a position on, at most one more than `limit`. */
const listProblems = async (
  db: Db,
  workspaceIds: readonly string[],
  from: Position | undefined,
  limit: number,
) => {
  const found: (Problem & { workspace_id: string; check: string; status: 'problem' })[] = []
  for (const workspaceId of workspaceIds) {
    if (from && BigInt(workspaceId) < BigInt(from.workspaceId)) continue
    const resumed = from?.workspaceId === workspaceId ? from : undefined
    for (const [index, check] of checks.entries()) {
      if (resumed && index < resumed.check) continue
      const after = resumed?.check === index ? resumed.after : '0'
      const problems = await check.list(db, workspaceId, after, limit + 1 - found.length)
      const at = { workspace_id: workspaceId, check: check.name, status: 'problem' as const }
      found.push(...problems.map((problem) => ({ ...at, ...problem })))
      if (found.length > limit) return found
    }
  }
  return found
}

/** Of the installation as a whole: they are on the first page. */
const listFindings = async (session: AdminSession) =>
  (await checkInstallation({ db: await session.db(), config: session.config })).map(
    ({ check, status, about, detail, fix }) => ({
      workspace_id: null,
      check,
      status,
      id: null,
      about,
      of: null,
      detail,
      fix,
    }),
  )

export const doctorVerb: AdminVerb = {
  name: 'doctor',
  summary: 'Check the installation, and look for records that need attention',
  about:
    'Changes nothing. Exits with 1 when there are problems, with 0 when there are only warnings. Checks first the ' +
    'installation: whether received files can be written, read and removed where WCRM_MEDIA says, free space, ' +
    'settings, transactions and tables of PostgreSQL, its replication and archive, queues, the clocks and versions ' +
    'of servers, a sandbox in production, and the age of secrets; each check takes 5 seconds at most. It sees the ' +
    "environment that it runs in: give it the servers'. Lists then problems of records, such as two contacts of one " +
    'customer, by workspace, check and id; --after continues with the next page.',
  scoped: false,
  access: 'read',
  columns: ['workspace_id', 'status', 'check', 'about', 'of', 'detail', 'fix'],
  options: [
    ['--workspace <id>', 'only this workspace (default: all)'],
    ['--limit <n>', `problems of a page, 1 to ${MAX_LIMIT} (default ${DEFAULT_LIMIT})`],
    ['--after <position>', 'next_after of the previous page'],
  ],
  run: async (session, flags) => {
    const limit = limitOf(flags)
    const from = positionOf(flags)
    const db = await session.db()
    const workspaces =
      stringFlag(flags, 'workspace') === undefined ? await listWorkspaces(db) : [await session.workspace()]
    const ids = workspaces.map(({ id }) => id).toSorted((a, b) => Number(BigInt(a) - BigInt(b)))
    const found = await listProblems(db, ids, from, limit)
    const page = found.slice(0, limit)
    const about = from || flags['workspace'] !== undefined ? [] : await listFindings(session)
    const last = page.at(-1)
    const next = found.length > limit ? `${last!.workspace_id}:${last!.check}:${last!.id}` : null
    const data = [...about, ...page]
    const problems = data.filter(({ status }) => status === 'problem').length
    const counts = { problems, warnings: data.length - problems }
    if (flags['json'] !== true) session.io.stderr.write(describePage(counts, next))
    return { ok: problems === 0, data, next_after: next }
  },
  exitCode: ({ ok }) => (ok === true ? 0 : 1),
}

const describePage = (
  { problems, warnings }: { problems: number; warnings: number },
  next: string | null,
): string =>
  [
    problems === 0 ? 'No problems' : pluralize(problems, 'problem'),
    ...(warnings === 0 ? [] : [pluralize(warnings, 'warning')]),
    ...(next === null ? [] : [`and more: --after ${next}`]),
  ].join(', ') + '.\n'
