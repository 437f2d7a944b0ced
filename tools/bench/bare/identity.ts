import type { Database } from './database.ts'

const identitySql = `
  select json_build_object(
    'workspace', json_build_object('id', w.id::text, 'name', w.name, 'timezone', w.timezone,
      'plan', json_build_object('features', w.features, 'contact_limit', w.contact_limit,
        'template_limit', w.template_limit)),
    'staff', json_build_object('id', s.id::text, 'name', s.name, 'role', s.role,
      'hide_phone_numbers', s.hide_phone_numbers, 'reports', s.reports),
    'key', json_build_object('id', k.id::text, 'name', k.name, 'scopes', k.scopes, 'test', k.test,
      'api_version', k.api_version, 'expires_at', k.expires_at, 'agent', k.agent, 'phones', k.phones,
      'policy', k.policy)) as identity
  from api_keys k
  join staff s on s.workspace_id = k.workspace_id and s.id = k.staff_id
  join workspaces w on w.id = k.workspace_id
  where k.workspace_id = $1 order by k.id limit 1`

/** Reads the identity of the key once, since the product caches it; the rest of its limits is counted. */
export const createIdentity = async ({ quick, workspaceId }: Database) => {
  const [row] = await quick(identitySql, [workspaceId])
  const identity = row!['identity'] as Record<string, unknown>
  const allowance = { limit: 100_000_000, remaining: 99_999_999, window_seconds: 60 }
  return () => {
    allowance.remaining--
    return { ...identity, limits: { read: allowance, write: allowance } }
  }
}
