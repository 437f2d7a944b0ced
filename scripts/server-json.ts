import { readFileSync, writeFileSync } from 'node:fs'
import { serverDescription, serverInfo } from '../mcp/identity.ts'

// Generates server.json, the entry of this server in a registry of MCP servers: the package with its stdio bridge,
// and servers that people host. Name and version are those of package.json.

const apiKey = {
  name: 'WCRM_API_KEY',
  description: 'An API key of a wcrm server: wcrm admin keys create --agent',
  isRequired: true,
  isSecret: true,
  format: 'string',
  placeholder: 'wc_live_…',
}

/** Renders the file as it should be committed. */
export const renderServerJson = (): string => {
  const { name, version, mcpName } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  ) as { name: string; version: string; mcpName: string }
  const entry = {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: mcpName,
    title: serverInfo.title,
    description: serverDescription,
    version,
    packages: [
      {
        registryType: 'npm',
        identifier: name,
        version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', value: 'mcp' }],
        environmentVariables: [
          apiKey,
          {
            name: 'WCRM_URL',
            description: 'The address of the wcrm server.',
            isRequired: false,
            format: 'string',
            default: 'http://127.0.0.1:8787',
          },
        ],
      },
    ],
    remotes: [
      {
        type: 'streamable-http',
        url: 'https://{host}/mcp',
        variables: {
          host: {
            description: 'The host name of your wcrm server.',
            isRequired: true,
            placeholder: 'crm.example.com',
          },
        },
        headers: [
          {
            name: 'Authorization',
            description: apiKey.description,
            isRequired: true,
            isSecret: true,
            value: 'Bearer {api_key}',
            variables: { api_key: { description: 'The API key.', isRequired: true, isSecret: true } },
          },
        ],
      },
    ],
  }
  return `${JSON.stringify(entry, null, 2)}\n`
}

if (import.meta.main) writeFileSync(new URL('../server.json', import.meta.url), renderServerJson())
