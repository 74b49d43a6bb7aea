// SPDX-License-Identifier: Apache-2.0

// A Terraform provider that knows the schemas of other providers and nothing else: `terraform validate` and
// `terraform test` with mocked providers work against it without network or credentials. Under which name the program
// is started says whose schemas it serves: terraform-provider-NAME reads schemas/NAME.json, which has the form that
// `terraform providers schema -json` prints for one provider. It refuses to be configured, and so creates nothing.
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed schemas/*.json
var files embed.FS

type providerSchemas struct {
	Source      string            `json:"source"`
	Version     string            `json:"version"`
	Provider    schema            `json:"provider"`
	Resources   map[string]schema `json:"resource_schemas"`
	DataSources map[string]schema `json:"data_source_schemas"`
}

type schema struct {
	Version int64 `json:"version"`
	Block   block `json:"block"`
}

type block struct {
	Attributes map[string]attribute `json:"attributes"`
	BlockTypes map[string]blockType `json:"block_types"`
}

type blockType struct {
	Nesting  string `json:"nesting_mode"`
	MinItems int64  `json:"min_items"`
	MaxItems int64  `json:"max_items"`
	Block    block  `json:"block"`
}

type attribute struct {
	Type      json.RawMessage `json:"type"`
	Nested    *nestedType     `json:"nested_type"`
	Required  bool            `json:"required"`
	Optional  bool            `json:"optional"`
	Computed  bool            `json:"computed"`
	Sensitive bool            `json:"sensitive"`
}

type nestedType struct {
	Attributes map[string]attribute `json:"attributes"`
	Nesting    string               `json:"nesting_mode"`
}

var blockNesting = map[string]tfprotov6.SchemaNestedBlockNestingMode{
	"single": tfprotov6.SchemaNestedBlockNestingModeSingle,
	"list":   tfprotov6.SchemaNestedBlockNestingModeList,
	"set":    tfprotov6.SchemaNestedBlockNestingModeSet,
}

var objectNesting = map[string]tfprotov6.SchemaObjectNestingMode{
	"single": tfprotov6.SchemaObjectNestingModeSingle,
	"list":   tfprotov6.SchemaObjectNestingModeList,
	"set":    tfprotov6.SchemaObjectNestingModeSet,
	"map":    tfprotov6.SchemaObjectNestingModeMap,
}

func (s schema) protocol() (*tfprotov6.Schema, error) {
	converted, err := s.Block.protocol()
	return &tfprotov6.Schema{Version: s.Version, Block: converted}, err
}

func (b block) protocol() (*tfprotov6.SchemaBlock, error) {
	attributes, err := protocolAttributes(b.Attributes)
	if err != nil {
		return nil, err
	}
	converted := &tfprotov6.SchemaBlock{Attributes: attributes}
	for name, nested := range b.BlockTypes {
		inner, err := nested.Block.protocol()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		mode, known := blockNesting[nested.Nesting]
		if !known {
			return nil, fmt.Errorf("%s: a block cannot nest as %q", name, nested.Nesting)
		}
		converted.BlockTypes = append(converted.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Nesting: mode, MinItems: nested.MinItems, MaxItems: nested.MaxItems, Block: inner,
		})
	}
	return converted, nil
}

func protocolAttributes(named map[string]attribute) ([]*tfprotov6.SchemaAttribute, error) {
	var converted []*tfprotov6.SchemaAttribute
	for name, given := range named {
		one := &tfprotov6.SchemaAttribute{
			Name: name, Required: given.Required, Optional: given.Optional, Computed: given.Computed, Sensitive: given.Sensitive,
		}
		var err error
		if given.Nested == nil {
			one.Type, err = tftypes.ParseJSONType(given.Type) //nolint:staticcheck // the only reader of this notation there is
		} else {
			one.NestedType, err = given.Nested.protocol()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		converted = append(converted, one)
	}
	return converted, nil
}

func (n nestedType) protocol() (*tfprotov6.SchemaObject, error) {
	mode, known := objectNesting[n.Nesting]
	if !known {
		return nil, fmt.Errorf("an attribute cannot nest as %q", n.Nesting)
	}
	attributes, err := protocolAttributes(n.Attributes)
	return &tfprotov6.SchemaObject{Attributes: attributes, Nesting: mode}, err
}

func protocolSchemas(named map[string]schema) (map[string]*tfprotov6.Schema, error) {
	converted := map[string]*tfprotov6.Schema{}
	for name, given := range named {
		one, err := given.protocol()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		converted[name] = one
	}
	return converted, nil
}

func read(name string) (providerSchemas, *tfprotov6.GetProviderSchemaResponse, error) {
	var given providerSchemas
	text, err := files.ReadFile("schemas/" + name + ".json")
	if err != nil {
		return given, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return given, nil, err
	}
	answer := &tfprotov6.GetProviderSchemaResponse{ServerCapabilities: &tfprotov6.ServerCapabilities{}}
	if answer.Provider, err = given.Provider.protocol(); err != nil {
		return given, nil, err
	}
	if answer.ResourceSchemas, err = protocolSchemas(given.Resources); err != nil {
		return given, nil, err
	}
	answer.DataSourceSchemas, err = protocolSchemas(given.DataSources)
	return given, answer, err
}

// Whatever is not defined below is never asked for as long as nothing can be configured.
type server struct {
	tfprotov6.ProviderServer
	source  string
	schemas *tfprotov6.GetProviderSchemaResponse
}

func (s server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	answer := &tfprotov6.GetMetadataResponse{ServerCapabilities: s.schemas.ServerCapabilities}
	for name := range s.schemas.ResourceSchemas {
		answer.Resources = append(answer.Resources, tfprotov6.ResourceMetadata{TypeName: name})
	}
	for name := range s.schemas.DataSourceSchemas {
		answer.DataSources = append(answer.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	return answer, nil
}

func (s server) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	return s.schemas, nil
}

func (s server) GetResourceIdentitySchemas(
	context.Context, *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (s server) ValidateProviderConfig(
	_ context.Context, request *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: request.Config}, nil
}

func (s server) ValidateResourceConfig(
	context.Context, *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (s server) ValidateDataResourceConfig(
	context.Context, *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

// OpenTofu has a mocked resource's state upgraded where Terraform does not. It was written in the only version that
// there is.
func (s server) UpgradeResourceState(
	_ context.Context, request *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	known, found := s.schemas.ResourceSchemas[request.TypeName]
	if !found {
		return nil, fmt.Errorf("%s has no resource %q", s.source, request.TypeName)
	}
	form := known.ValueType()
	value, err := request.RawState.Unmarshal(form)
	if err != nil {
		return nil, err
	}
	state, err := tfprotov6.NewDynamicValue(form, value)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &state}, err
}

func (s server) ConfigureProvider(
	context.Context, *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{Diagnostics: []*tfprotov6.Diagnostic{{
		Severity: tfprotov6.DiagnosticSeverityError,
		Summary:  "this is only the schema of " + s.source,
		Detail:   "It serves validation and mocked tests and cannot create anything. Install the real provider.",
	}}}, nil
}

func (s server) StopProvider(
	context.Context, *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func main() {
	name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-"), "_v")
	given, schemas, err := read(name)
	if err == nil {
		err = tf6server.Serve(given.Source, func() tfprotov6.ProviderServer {
			return server{source: given.Source, schemas: schemas}
		})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "schemas of %s: %v\n", name, err)
		os.Exit(1)
	}
}
