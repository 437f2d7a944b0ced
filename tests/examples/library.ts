import { registerHooks } from 'node:module'

// The examples import the client library by its name, as outside of this repository: here it is its source.
const source = new URL('../../client/index.ts', import.meta.url).href

registerHooks({
  resolve: (name, context, next) => next(name === '@wcrm/client' ? source : name, context),
})
