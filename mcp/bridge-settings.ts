type Environment = Readonly<Record<string, string | undefined>>

/** A setting; undefined when it is empty, or when a desktop client left the placeholder of its form. */
export const readSetting = (env: Environment, name: string): string | undefined => {
  const value = env[name]?.trim()
  return value === undefined || value === '' || value.startsWith('${') ? undefined : value
}

/** Settings of the bridge from the environment, for clients that start it without arguments. */
export const readBridgeSettings = (
  env: Environment,
): { toolsets: string | undefined; readonly: boolean; compact: boolean } => ({
  toolsets: readSetting(env, 'WCRM_TOOLSETS'),
  // Fails closed, as the parameter `readonly` does: whatever is not `false` means reads only.
  readonly: (readSetting(env, 'WCRM_READONLY') ?? 'false').toLowerCase() !== 'false',
  compact: /^(?:1|true|yes|on)$/i.test(readSetting(env, 'WCRM_COMPACT') ?? ''),
})

/** Returns the path of the endpoint with these settings. */
export const toBridgePath = ({
  toolsets,
  readonly,
  compact,
}: Partial<ReturnType<typeof readBridgeSettings>>): string => {
  const query = new URLSearchParams({
    ...(toolsets === undefined ? {} : { toolsets }),
    ...(readonly ? { readonly: 'true' } : {}),
    ...(compact ? { mode: 'compact' } : {}),
  })
  return `/mcp${query.size > 0 ? `?${query}` : ''}`
}
