import { getAllowances } from '../../limits/rate-limit.ts'
import type { Handler } from '../../handler.ts'
import { channelTypes } from '../../../catalog/channels.ts'
import { defaultPolicy } from '../../../catalog/policy.ts'
import { fold } from '../../../storage/values/text.ts'
import { readChannelHealth } from '../../../storage/channels/health.ts'
import { type ChannelRow, readChannels, readStaff, readTeams } from '../../../storage/workspace/workspace.ts'
import { createPageOfRows } from '../../kernel/paging.ts'
import { showHealth } from '../health/record.ts'
import { reasonTexts } from '../health/rules.ts'
import { canSeeChannel, hasHiddenPhones } from '../../visibility/policy.ts'

export const whoami: Handler<'workspace_whoami'> = async ({
  actor,
  actor: { workspace, staff, key },
  services,
}) => ({
  workspace: {
    id: workspace.id,
    name: workspace.name,
    timezone: workspace.timezone,
    plan: {
      features: [...workspace.features],
      contact_limit: workspace.contactLimit,
      template_limit: workspace.templateLimit,
    },
  },
  staff: {
    id: staff.id,
    name: staff.name,
    role: staff.role,
    hide_phone_numbers: hasHiddenPhones(actor),
    reports: staff.reports,
  },
  key: {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    test: key.test,
    api_version: key.apiVersion,
    expires_at: key.expiresAt,
    agent: key.agent,
    phones: key.phones,
    policy: key.agent ? (key.policy ?? defaultPolicy) : null,
  },
  limits: getAllowances(services, actor),
})

/** Returns the rows with a name that contains `search`, ignoring case; all without it. */
const filterByName = <Row>(
  rows: readonly Row[],
  search: string | undefined,
  namesOf: (row: Row) => (string | null)[],
): readonly Row[] => {
  if (search === undefined) return rows
  const foldedSearch = fold(search)
  return rows.filter((row) => namesOf(row).some((name) => name !== null && fold(name).includes(foldedSearch)))
}

export const listStaff: Handler<'workspace_list_staff'> = async ({ tx, actor, cursors }, input) =>
  await createPageOfRows(
    cursors,
    input,
    filterByName(await readStaff(tx, actor.workspace.id), input.search, (row) => [row.name]),
    (row) => ({
      id: row.id,
      name: row.name,
      role: row.role,
      enabled: row.enabled,
      team_ids: row.team_ids ?? [],
      channel_ids: row.channel_ids?.filter((id) => canSeeChannel(actor, id)) ?? null,
    }),
  )

export const listTeams: Handler<'workspace_list_teams'> = async ({ tx, actor, cursors }, input) =>
  await createPageOfRows(
    cursors,
    input,
    filterByName(await readTeams(tx, actor.workspace.id), input.search, (row) => [row.name]),
    (row) => ({ id: row.id, name: row.name, staff_ids: row.staff_ids ?? [] }),
  )

const withoutProblem = {
  status: 'ok',
  reason: null,
  provider_code: null,
  messaging_limit: null,
  since: null,
  until: null,
} as const

type HealthRows = Awaited<ReturnType<typeof readChannelHealth>>

/** The health of a channel with a number at the provider. What has passed by itself is no longer a problem. */
const showChannelHealth = (
  { id, provider_phone_number_id: number }: ChannelRow,
  rows: HealthRows,
  realNow: string,
) => {
  if (number === null) return null
  const row = rows.get(id)
  const hasPassed = row?.until != null && Date.parse(row.until) <= Date.parse(realNow)
  return showHealth({
    ...withoutProblem,
    ...(hasPassed ? { since: row.until, messaging_limit: row.messaging_limit } : row),
  })
}

const showChannel = (row: ChannelRow, health: HealthRows, realNow: string) => ({
  id: row.id,
  provider_channel_id: row.provider_channel_id,
  name: row.name,
  type: row.type,
  identifier: row.identifier,
  is_default: row.is_default,
  status: row.status,
  web_surface: row.web_surface,
  provider_phone_number_id: row.provider_phone_number_id,
  payment_configuration: row.payment_configuration,
  quality_rating: row.quality_rating,
  health: showChannelHealth(row, health, realNow),
})

const listWarnings = (rows: readonly ReturnType<typeof showChannel>[]): string[] =>
  rows.flatMap((row) => [
    ...(row.is_default && row.status !== 'connected'
      ? [`The default channel ${row.name ?? row.id} is ${row.status}; sends without a channel will fail.`]
      : []),
    ...(row.health?.reason != null
      ? [
          `Channel ${row.name ?? row.id} is ${row.health.status} at the provider: ` +
            `${reasonTexts[row.health.reason] ?? row.health.reason}.`,
        ]
      : []),
    ...(row.type !== null && !(channelTypes as readonly string[]).includes(row.type)
      ? [`Channel ${row.id} has the type ${row.type}, which the type filter does not know.`]
      : []),
  ])

export const listChannels: Handler<'workspace_channels'> = async ({ tx, actor, cursors, realNow }, input) => {
  const rows = (await readChannels(tx, actor.workspace.id)).filter(
    (row) => canSeeChannel(actor, row.id) && (input.type === undefined || row.type === input.type),
  )
  const health = rows.some((row) => row.provider_phone_number_id !== null)
    ? await readChannelHealth(tx, actor.workspace.id)
    : new Map()
  const { data, total, next_cursor } = await createPageOfRows(
    cursors,
    input,
    filterByName(rows, input.search, (row) => [row.name, row.identifier]),
    (row) => showChannel(row, health, realNow),
  )
  return { data, total, next_cursor, warnings: listWarnings(data) }
}
