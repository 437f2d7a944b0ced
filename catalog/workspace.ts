import { z } from 'zod'
import { Id, listWithTotal, page, Search, Timestamp } from './fields.ts'
import { Policy } from './policy.ts'
import { defineOperation, scopes } from './operation.ts'

export const roles = ['owner', 'admin', 'manager', 'agent'] as const
export type Role = (typeof roles)[number]

const Staff = z
  .object({
    id: Id.describe('Staff id.'),
    name: z.string().describe('Display name.'),
    role: z
      .enum(roles)
      .describe(
        'Owners, admins and managers see everything; agents may have hidden phone numbers, and never see ' +
          'manager-only fields.',
      ),
    enabled: z.boolean().describe('False: the keys of this staff member are refused.'),
    team_ids: z.array(Id).describe('Teams this staff member belongs to.'),
    channel_ids: z.array(Id).nullable().describe('Channels this staff member may use; null: all.'),
  })
  .meta({ id: 'Staff' })

const Team = z
  .object({
    id: Id.describe('Team id.'),
    name: z.string().describe('Display name.'),
    staff_ids: z.array(Id).describe('Members.'),
  })
  .meta({ id: 'Team' })

const Allowance = z.object({
  limit: z.int().describe('Requests per window.'),
  remaining: z.int().describe('Requests left now.'),
  window_seconds: z.int().describe('Length of the window in seconds.'),
})

export const whoami = defineOperation({
  name: 'workspace_whoami',
  cli: 'whoami',
  routes: ['GET /v1/me'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Show the workspace, staff member and key that a request acts as',
  forModels: 'Who you act as: workspace, time zone, staff member, and the scopes of the key. Call it first.',
  words:
    'who am I, current user, identity, permissions, scopes, rights, policy, access, time zone, ' +
    'account, company',
  scope: 'mcp:read',
  input: z.object({}),
  output: z.object({
    workspace: z
      .object({
        id: Id.describe('Workspace id.'),
        name: z.string().describe('Display name.'),
        timezone: z.string().describe('IANA time zone.'),
        plan: z
          .object({
            features: z.array(z.string()).describe('Features of the plan.'),
            contact_limit: z.int().nullable().describe('Most contacts; null: no limit.'),
            template_limit: z.int().nullable().describe('Most templates; null: no limit.'),
          })
          .describe('The plan.'),
      })
      .describe('The workspace.'),
    staff: z
      .object({
        id: Id.describe('Staff id.'),
        name: z.string().describe('Display name.'),
        role: z.enum(roles).describe('Role.'),
        hide_phone_numbers: z
          .boolean()
          .describe(
            'True: phone numbers are masked for this key, of a staff member with hidden phone numbers or of an ' +
              'AI agent.',
          ),
        reports: z.boolean().describe('May read the staff report.'),
      })
      .describe('The staff member who owns the key.'),
    key: z
      .object({
        id: Id.describe('Key id.'),
        name: z.string().nullable().describe('Name given when it was created.'),
        scopes: z.array(z.enum(scopes)).describe('What the key may do.'),
        test: z.boolean().describe('True: every change runs as a dry run.'),
        api_version: z.string().describe('The API version the key is pinned to.'),
        expires_at: Timestamp.nullable().describe('When it expires; null: never.'),
        agent: z.boolean().describe("True: an AI agent's."),
        phones: z.boolean().describe('False: phone numbers are masked for calls with it.'),
        policy: Policy.nullable().describe(
          'What the agent may do without approval; null for keys of people. By default, operations with a ' +
            'confirm verb, and those that set the targets of webhooks, are `ask`, and all others `allow`.',
        ),
      })
      .describe('The key.'),
    limits: z
      .object({ read: Allowance.describe('Reads.'), write: Allowance.describe('Changes.') })
      .describe('Rate limits of the key.'),
  }),
  errors: [],
  examples: [
    {
      title: 'The demo key',
      input: {},
      output: {
        workspace: {
          id: '1',
          name: 'Demo',
          timezone: 'Europe/Berlin',
          plan: { features: ['api_access'], contact_limit: null, template_limit: null },
        },
        staff: { id: '1', name: 'Olivia Owner', role: 'owner', hide_phone_numbers: false, reports: true },
        key: {
          id: '1',
          name: 'demo',
          scopes: ['mcp:read', 'crm:write'],
          test: false,
          api_version: '2026-10-01',
          expires_at: null,
          agent: false,
          phones: true,
          policy: null,
        },
        limits: {
          read: { limit: 300, remaining: 299, window_seconds: 60 },
          write: { limit: 60, remaining: 60, window_seconds: 60 },
        },
      },
    },
  ],
})

export const listStaff = defineOperation({
  name: 'workspace_list_staff',
  cli: 'staff list',
  routes: ['GET /v1/staff'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'List the staff of the workspace',
  forModels: 'Their ids are what conversations are assigned to.',
  words:
    'staff, employees, colleagues, users, agents, operators, team members, people on the team, who can ' +
    'be assigned, online, ids by name, need the id of a colleague',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name' },
    { path: 'role' },
    { path: 'enabled' },
    { path: 'team_ids', title: 'teams' },
    { path: 'channel_ids', title: 'channels' },
  ],
  names: {
    fields: { staff_id: 'staff', assigned_staff_id: 'assignee' },
    by: ['name'],
    beside: 'role',
    me: { operation: 'workspace_whoami', path: 'staff.id' },
  },
  input: z.object({ search: Search('Name'), ...page }),
  output: z.object(listWithTotal(Staff)),
  errors: [],
  examples: [
    {
      title: 'Find a colleague',
      input: { search: 'oliv' },
      output: {
        data: [
          { id: '1', name: 'Olivia Owner', role: 'owner', enabled: true, team_ids: [], channel_ids: null },
        ],
        total: 1,
        next_cursor: null,
      },
    },
  ],
})

export const listTeams = defineOperation({
  name: 'workspace_list_teams',
  cli: 'teams list',
  routes: ['GET /v1/teams'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'List the teams of the workspace',
  words: 'teams, departments, sales, support, squads',
  scope: 'mcp:read',
  names: { fields: { team_id: 'team' }, by: ['name'] },
  input: z.object({ search: Search('Name'), ...page }),
  output: z.object(listWithTotal(Team)),
  errors: [],
  examples: [
    {
      title: 'All teams',
      input: {},
      output: { data: [{ id: '1', name: 'Support', staff_ids: ['2', '3'] }], total: 1, next_cursor: null },
    },
  ],
})
