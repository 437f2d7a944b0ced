import { businessTime } from '../../server/clock.ts'
import { Problem } from '../../server/kernel/problem.ts'
import { generateReport, nightlyRanges, resolvePastRange } from '../../server/domains/reports/generate.ts'
import { listClockOffsets } from '../../storage/workspace/clock.ts'
import { listReports } from '../../storage/reports/staff-reports.ts'
import { usageError } from '../error.ts'
import { nameFlag, stringFlag } from './flags.ts'
import type { AdminFlags, AdminGroup, AdminSession } from './verb.ts'

/** Returns business time of a workspace, which the sandbox's clock can advance. */
export const loadBusinessTime = async (
  { config, db, now }: AdminSession,
  workspaceId: string,
): Promise<string> => {
  const clockOffsets = config.providerUrl === undefined ? await listClockOffsets(await db()) : new Map()
  return businessTime({ now: () => now, clockOffsets }, workspaceId)
}

/** Converts a problem of a field, such as an impossible day, to a usage error. */
const toUsageError = (error: unknown): unknown => {
  const field = error instanceof Problem ? error.extras.errors?.[0] : undefined
  return field
    ? usageError(`--${(error as Problem).message}`, `--${field.pointer!.slice(2)}`, field.fix)
    : error
}

const readSpans = (flags: AdminFlags, now: string, workspaceZone: string) => {
  const [from, to, timezone] = [
    stringFlag(flags, 'from'),
    stringFlag(flags, 'to'),
    stringFlag(flags, 'timezone'),
  ]
  if (nameFlag(flags) !== undefined && from === undefined && to === undefined)
    throw usageError('--name requires --from and --to.', '--name', 'Add them, or leave --name out.')
  try {
    if (from === undefined && to === undefined) return nightlyRanges(now, timezone ?? workspaceZone)
    return [resolvePastRange(now, workspaceZone, { from, to, timezone }, nameFlag(flags) ?? null)]
  } catch (error) {
    throw toUsageError(error)
  }
}

const COLUMNS = ['id', 'name', 'from', 'to', 'timezone', 'generated_at', 'rows'] as const

export const reportsGroup: AdminGroup = {
  name: 'reports',
  summary: 'Stored staff reports',
  verbs: [
    {
      name: 'generate',
      summary: 'Generate and store staff reports',
      scoped: true,
      columns: COLUMNS,
      about:
        'Without --from and --to: for yesterday, and for the last 7 and 30 days, as a server does each ' +
        'night. "wcrm reports staff" uses a stored report of exactly the requested days, unless a reply of ' +
        'these days failed later.',
      options: [
        ['--from <day>', 'first day, YYYY-MM-DD'],
        ['--to <day>', 'last day, inclusive: yesterday or earlier'],
        ['--timezone <name>', "IANA name (default: the workspace's)"],
        ['--name <name>', 'display name'],
      ],
      run: async (session, flags) => {
        const { id, timezone } = await session.workspace()
        const now = await loadBusinessTime(session, id)
        const db = await session.db()
        const data = []
        for (const span of readSpans(flags, now, timezone)) data.push(await generateReport(db, id, span, now))
        return { data }
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the stored reports, newest first',
      scoped: true,
      columns: COLUMNS,
      run: async (session) => ({
        data: await listReports(await session.db(), (await session.workspace()).id),
      }),
    },
  ],
}
