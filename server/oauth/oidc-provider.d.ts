/** The part of `oidc-provider` that is used here; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export type KoaContext = {
    req: IncomingMessage
    res: ServerResponse
    method: string
    path: string
    status: number
    body: unknown
    type: string
    set: (name: string, value: string) => void
    get: (name: string) => string
    redirect: (url: string) => void
    oidc?: { route?: string }
  }
  export type Interaction = {
    uid: string
    exp: number
    params: Record<string, unknown>
    returnTo: string
    result?: Record<string, unknown>
    save: (ttlSeconds: number) => Promise<string>
    destroy: () => Promise<void>
  }
  export type Client = { clientId: string; clientName?: string; redirectUris: string[] }
  type Grant = {
    addResourceScope: (resource: string, scope: string) => void
    rejectResourceScope: (resource: string, scope: string) => void
    save: () => Promise<string>
  }
  export type Provider = {
    proxy: boolean
    callback: () => (req: IncomingMessage, res: ServerResponse) => Promise<void>
    use: (middleware: (ctx: KoaContext, next: () => Promise<void>) => Promise<void>) => void
    on: (event: string, listener: (ctx: KoaContext, error: Error) => void) => void
    interactionDetails: (req: IncomingMessage, res: ServerResponse) => Promise<Interaction>
    interactionResult: (
      req: IncomingMessage,
      res: ServerResponse,
      result: Record<string, unknown>,
    ) => Promise<string>
    Client: { find: (id: string) => Promise<Client | undefined> }
    Grant: new (fields: { accountId: string; clientId: string }) => Grant
  }
  type ProviderClass = {
    new (issuer: string, configuration: Record<string, unknown>): Provider
    /** The request under way. */
    readonly ctx: KoaContext | undefined
  }
  type ErrorClass = new (description?: string) => Error
  export const Provider: ProviderClass
  export const errors: { InvalidGrant: ErrorClass; InvalidTarget: ErrorClass; InvalidRequest: ErrorClass }
}
