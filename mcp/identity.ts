import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server'
import { version } from '../server/version.ts'

/** What the server says of itself in `initialize` and `server/discover`, its card and its registry entry. */
export const serverInfo = { name: 'wcrm', title: 'wcrm', version } as const

/** At most 100 characters, the limit of server cards and of the registry. */
export const serverDescription =
  'Customer messaging and CRM for agents: inbox, replies, templates, contacts, filters and reports.'

/** The protocol revisions that `/mcp` speaks, the newest first: that without sessions, and those before it. */
export const protocolVersions: readonly string[] = ['2026-07-28', ...SUPPORTED_PROTOCOL_VERSIONS]
